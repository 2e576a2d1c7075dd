# Tables that are copied by several processes at a time while sessions write: rows and changes once, whatever the key, also when any of these processes
# is ended or killed; and by one where more cannot be had.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Writers;
use Test::More;
use Time::HiRes qw(time);

my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed (again: CDC_SEED=$seed)");
srand($seed);

my $postgres = CdcBridge::Postgres->new(conf => "max_worker_processes = 12\nmax_parallel_workers = 6\nautovacuum_naptime = 1s\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"format": "json", "snapshot_workers": 3, "snapshot_chunk_rows": 10000}')->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.item (id int primary key, n int not null, v text);
insert into shop.item select i, 0, md5(i::text) from generate_series(1, 100000) i;
create table shop.pair (a int, b int, n int not null, v text, primary key (a, b));
insert into shop.pair select i % 7, i, 0, 'v' || i from generate_series(1, 50000) i;
create table shop.word (code text not null, n int not null, v text);
create unique index word_code on shop.word (code desc);
alter table shop.word replica identity using index word_code;
insert into shop.word select md5(i::text), 0, 'w' || i from generate_series(1, 50000) i;
create table shop.long (id int primary key, n int not null, v text);
alter table shop.long alter column v set storage external;
insert into shop.long select i, 0, repeat('l', 200000) from generate_series(1, 20) i;
create table shop.slow (id int primary key, n int not null, v text, a numeric[]);
insert into shop.slow select i, 0, 'v', array(select x / 8.0 from generate_series(i, i + 59) x) from generate_series(1, 50000) i;
create schema other;
create table other.named (id name primary key);
insert into other.named select 'n' || i from generate_series(1, 20000) i;

-- the process id of a worker that reads a chunk, as soon as there is one; ended, if that is asked for
create function parallel_worker(ended bool default false) returns int language plpgsql as $$
declare
	found int;
	pause float8 = 0.001;
begin
	for i in 1 .. 20000 loop
		perform pg_stat_clear_snapshot();
		select pid into found from pg_stat_activity where backend_type = 'parallel worker' limit 1;
		exit when found is not null and (not ended or pg_terminate_backend(found));
		perform pg_sleep(pause);
	end loop;
	return found;
end $$;
SQL

sub one_transaction
{
	my $i = 1 + int(rand(120000));
	my @write = (
		"insert into shop.item values ($i, 1, 'new') on conflict (id) do update set n = shop.item.n + 1",
		"delete from shop.item where id between $i and $i + 5",
		"update shop.item set id = (id + 60000) % 120000 + 1 where id = $i and not exists (select from shop.item x where x.id = ($i + 60000) % 120000 + 1)",
		"update shop.item set n = n + 1 where id between $i and $i + 20",
		"update shop.pair set n = n + 1 where a = $i % 7 and b between $i / 3 and $i / 3 + 50",
		"update shop.pair set a = (a + 3) % 7 where b = $i / 3",
		"update shop.word set n = n + 1 where code > md5('$i') and code < md5('$i') || 'f' or code = md5('$i')",
		"delete from shop.word where code = md5('$i'); insert into shop.word values (md5('$i'), 2, 'again') on conflict do nothing",
		"update shop.long set n = n + 1 where id = $i % 20",
		"update shop.slow set n = n + 1 where id between $i / 3 and $i / 3 + 3",
	);
	return join(";\n", 'begin', (map { $write[ rand @write ] } 1 .. 1 + int(rand(3))), 'commit') . ";\n";
}

my $writers = CdcBridge::Writers->new(postgres => $postgres, seed => $seed, batch => 50, sql => \&one_transaction);

# The rows that the files lead to: key -> n and v. Dies at a row that comes while it is there, and at a change of one that is not.
my %key = (item => ['id'], pair => [ 'a', 'b' ], word => ['code'], long => ['id'], slow => ['id']);
my (%there, %read);

sub key_of
{
	my ($table, $text) = @_;
	return join('|', map { $text =~ /"$_":"?(\w+)/ ? $1 : die "no $_ in " . substr($text, 0, 200) . "\n" } @{ $key{$table} });
}

sub replay
{
	for my $file ($export->files)
	{
		my @piece;
		open(my $in, '<:raw', $file) or die "$file: $!\n";
		seek($in, $read{$file} // 0, 0);
		while (my $line = <$in>)
		{
			if ($line !~ /^\{"cdc_bridge"/) { push @piece, $line; next; }
			take($_) for splice(@piece);
			$read{$file} = tell($in);
		}
	}
	return 1;
}

sub take
{
	my ($line) = @_;
	my ($op) = $line =~ /"op":"(\w+)"/;
	my ($table) = $line =~ /"table":"(\w+)"/;
	return unless defined $table && $key{$table};
	my $rows = $there{$table} //= {};
	if ($op eq 'truncate') { %$rows = (); return; }
	my ($row) = $line =~ /"row":(\{[^}]*\})/;
	my ($old) = $line =~ /"old":(\{[^}]*\})/;
	my $new = $row && key_of($table, $row);
	if ($op eq 'insert' || $op eq 'read') { die "$op of $table $new, which is there\n" if $rows->{$new}; }
	elsif ($op eq 'update' || $op eq 'delete')
	{
		my $before = key_of($table, $old // $row);
		my $was = delete $rows->{$before} or die "$op of $table $before, which is not there\n";
		return if $op eq 'delete';
		$row =~ s/"n":\d+\K/,"v":"$was->[1]"/ unless $row =~ /"v":/;
	}
	else { return; }
	$rows->{$new} = [ $row =~ /"n":(\d+)/, $row =~ /"v":"(\w*)"/ ];
	return;
}

sub is_all_there
{
	my ($name) = @_;
	return ok(0, $name) || diag($@) unless eval { replay() };
	for my $table (sort keys %key)
	{
		my $key = join(" || '|' || ", map { "$_\::text" } @{ $key{$table} });
		my %row = map { my ($k, $n, $v) = split(/\t/); ($k => "$n $v") } split(/\n/, $postgres->psql("select $key || E'\\t' || n || E'\\t' || v from shop.$table"));
		my $files = $there{$table} // {};
		my @differ = grep { !$files->{$_} || !defined $row{$_} || "@{ $files->{$_} }" ne $row{$_} } keys %{ { %row, %$files } };
		is(scalar(@differ), 0, "$name: $table (" . keys(%row) . ' rows)') or diag(join(', ', @differ[ 0 .. ($#differ < 4 ? $#differ : 4) ]));
	}
	return;
}

# ---- several processes, with writers beside them

$writers->start(3);
$export->start->wait_for_state('streaming', 60);
$writers->end;
$export->wait_for_all;
cmp_ok($export->status('parallel_chunks'), '>=', 3, 'several processes have read chunks: ' . $export->status('parallel_chunks') . ' of '
	. $postgres->psql('select sum(chunks) from pg_stat_cdc_export_table'));
is_all_there('copied by several processes while sessions write');

# ---- processes that end in the middle

sub copy_again
{
	my ($ended) = @_;
	$postgres->psql("select cdc_resync_table('shop_out', 'shop.*')");
	return $postgres->psql('select parallel_worker(' . ($ended ? 'true' : '') . ')');
}

like(copy_again(1), qr/^\d+$/, 'a worker is ended');
$export->wait_for_status('last_error', qr/terminating (connection|background worker)/);
is($export->status('last_error_sqlstate'), '57P01', "a worker's error is the pipeline's");
$export->wait_for_state('streaming', 60)->wait_for_all;
is_all_there('a worker was ended');

copy_again();
my $start = time();
$export->stop;
my $gone = $postgres->poll("select count(*) from pg_stat_activity where backend_type = 'parallel worker'", '0');
my $took = time() - $start;
ok($gone && $took < 5, sprintf('stopped in the middle of a chunk, workers and all, in %.1f s', $took));
$export->start->wait_for_state('streaming', 60)->wait_for_all;
copy_again();
$start = time();
my $pid = $export->status('pid');
$postgres->psql("select pg_terminate_backend($pid)");
$gone = $postgres->poll("select count(*) from pg_stat_activity where pid = $pid", '0');
$took = time() - $start;
ok($gone && $took < 5, sprintf('the export worker was ended in the middle of a chunk, in %.1f s', $took));
$export->wait_for_state('streaming', 60)->wait_for_all;
$writers->start(2, 10);
my $killed = poll_until(sub { return kill('KILL', copy_again()) }, 20);
ok($killed, 'a worker is killed');
$postgres->poll('select 1', '1');
like($postgres->log_text, qr/parallel worker.*was terminated by signal 9/, '... which is a crash of the server');
$export->wait_for_state('streaming', 60);
$writers->end;
$export->wait_for_all;
is_all_there('stopped, ended and killed');

# ---- one process

my $named = CdcBridge::Export->new(postgres => $postgres, name => 'named', dir => $export->{dir}, tables => '{other.named}', options => '{"snapshot_chunk_rows": 10000}');
$named->start->wait_for_state('streaming', 60);
is($named->status('parallel_chunks'), '0', 'a key that its index keeps in another form is read by one');
$postgres->psql('alter system set max_parallel_workers = 0');
$postgres->psql('select pg_reload_conf()');
$postgres->poll('show max_parallel_workers', '0');
my $chunks = $export->status('parallel_chunks');
$postgres->psql("select cdc_resync_table('shop_out', 'shop.*')");
$export->wait_for_state('snapshot')->wait_for_state('streaming', 60)->wait_for_all;
is($export->status('parallel_chunks'), $chunks, 'none is to be had: by one');
is_all_there('copied by one');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
