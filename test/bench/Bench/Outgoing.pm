package Bench::Outgoing;

# What the benches of the way out share: a log of inserts and updates, and readers of it, each with a slot of its own.

use strict;
use warnings;

use Bench qw(run_shell);
use Bench::Session;
use Time::HiRes qw(time);

sub new
{
	my ($class, $bench) = @_;
	my $rows = $bench->rows;
	return bless { postgres => $bench->postgres, session => Bench::Session->new($bench->postgres), rows => $rows, size => $rows < 1000 ? $rows : 1000 }, $class;
}

sub session { return $_[0]{session}; }

sub make_table
{
	my ($self) = @_;
	$self->{postgres}->psql('create table bench.item (id bigint primary key, a int not null, b bigint, price numeric(12,2) not null, name varchar(40) not null, note text, made timestamptz not null, ratio float8 not null, flag smallint not null); '
		  . 'create publication everything for tables in schema bench; create extension cdc_bridge');
	return;
}

sub wait_until
{
	my ($self, $sql, $pause) = @_;
	my $until = time() + 600;
	while (1)
	{
		last if $self->{session}->ask($sql) eq 't';
		die "not within ten minutes: $sql\n" if time() > $until;
		select(undef, undef, undef, $pause);
	}
	return;
}

# Make a pipeline of those options and stop it, so that its slot stands before the log.
sub make_pipeline
{
	my ($self, $name, $sink, $options) = @_;
	$self->{postgres}->psql("select cdc_start_pipeline('$name', sink => '$sink', tables => '{bench.*}', options => '$options')");
	$self->wait_until("select state = 'streaming' from pg_stat_cdc_export where pipeline = '$name'", 0.05);
	$self->{postgres}->psql("select cdc_stop_pipeline('$name')");
	return;
}

# Write the log, nobody reading; returns where it ends and how many changes it has.
sub write_log
{
	my ($self, $round) = @_;
	my ($postgres, $rows, $size) = @$self{qw(postgres rows size)};
	$self->wait_until('select count(pid) = 0 from pg_stat_cdc_export', 0.05);
	$postgres->psql(<<"SQL");
truncate bench.item;
do \$\$ begin
  for i in 0 .. $rows / $size - 1 loop
    insert into bench.item select ${\ Bench::row_target('id', $round) } from generate_series(i * $size + 1::bigint, (i + 1) * $size) id;
    commit;
  end loop;
  for i in 0 .. $rows / $size / 2 - 1 loop
    update bench.item set a = a + 1, note = 'changed' where id between i * $size + 1 and (i + 1) * $size;
    commit;
  end loop;
end \$\$;
SQL
	my $end = $postgres->psql('select pg_current_wal_insert_lsn()');
	my $changes = $postgres->psql(q{select count(*), count(*) filter (where note = 'changed') from bench.item}) =~ s/(\d+)\|(\d+)/$1 + $2 + 1/er;
	return ($end, $changes);
}

# pg_recvlogical into /dev/null; the options are the plugin's.
sub read_all
{
	my ($self, $slot, $end, $changes, @options) = @_;
	my $postgres = $self->{postgres};
	my (undef, $seconds) = run_shell(join(' ', $postgres->bindir . '/pg_recvlogical', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres', "--slot=$slot",
		'--start', '--no-loop', "--endpos=$end", '-F', '0', '-s', '0', '-f', '-', (map { "-o $_" } @options), '> /dev/null'));
	return ($changes, $seconds);
}

# From the call that starts the pipeline until all is in its sink: the start of the worker is part of it, as that of pg_recvlogical is there.
sub ship_all
{
	my ($self, $name, $end, $changes) = @_;
	my $start = time();
	$self->{session}->ask("select cdc_start_pipeline('$name')");
	$self->wait_until("select coalesce(decoded_lsn >= '$end', false) and pid is not null from pg_stat_cdc_export where pipeline = '$name'", 0.003);
	my $seconds = time() - $start;
	$self->{postgres}->psql("select cdc_stop_pipeline('$name')");
	$self->wait_until('select count(pid) = 0 from pg_stat_cdc_export', 0.01);
	return ($changes, $seconds);
}

1;
