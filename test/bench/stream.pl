#!/usr/bin/perl
# stream: how fast a stopped pipeline catches up with a load that was written meanwhile, from its start to the load's last row.
# Against COPY of the same rows (inserts), the direct loop of direct.c on a table of the same contents, and two replicas of the
# source's own kind, one as it is by default and one that does not wait for the disk. All do the same load in each round.
use strict;
use warnings;

use Bench qw(checksum_source checksum_target);
use CdcBridge::Source;
use Time::HiRes qw(time);

my $bench = Bench->new('stream');
$bench->start_servers;
my ($source, $postgres, $session, $pipeline) = ($bench->source, $bench->postgres, $bench->session, $bench->pipeline);
my $rows = $bench->rows;
$bench->create_table('item', $rows);
$bench->write_marker;
$pipeline->start->wait_for_tables($ENV{BENCH_TIMEOUT} || 3600)->stop;

# tables with the mirror's contents for the others
$postgres->psql('create table benchop.direct (like bench.item including all); insert into benchop.direct select * from bench.item order by id; '
	  . 'create table benchop.copied (like bench.item including all); insert into benchop.copied select * from bench.item order by id; '
	  . "create procedure benchop.direct_loop(target regclass, changes regclass, batch int, inout seconds float8) language c as '" . $bench->direct_module . "', 'bench_direct'");
my %replica = (
	'replica, default' => replica(71, '--innodb-flush-log-at-trx-commit=1', '--sync-binlog=1'),
	'replica, relaxed' => replica(72, '--innodb-flush-log-at-trx-commit=0', '--sync-binlog=0'),
);
wait_for_replica($replica{$_}, 1) for sort keys %replica;

my @kinds = qw(insert update delete mixed);
for my $round ($bench->rounds)
{
	for my $kind (@kinds)
	{
		my $transactions = $bench->make_load($kind, $rows);
		my $marker = $bench->write_load($transactions);
		my $changes = $postgres->psql('select count(*) from benchop.stage');
		my @ways = (
			pipeline => sub { my $seconds = $bench->time_pipeline($marker); $pipeline->stop; return ($changes, $seconds); },
			direct => sub { return ($changes, direct()); },
			map { my $name = $_; ($name => sub { return ($changes, time_replica($replica{$name}, $marker)); }) } sort keys %replica);
		push @ways, COPY => sub { return ($changes, copy()); } if $kind eq 'insert';
		$bench->take_turns($round, "$kind: ", @ways);
		$postgres->psql("vacuum $_") for qw(bench.item benchop.direct benchop.copied);
		next if $round < $bench->{rounds};
		$bench->check_equal("rows after $kind", source => checksum_source($source, 'bench.item'), pipeline => checksum_target($postgres, 'bench.item'),
			direct => checksum_target($postgres, 'benchop.direct'), map { $_ => checksum_source($replica{$_}, 'bench.item') } sort keys %replica);
	}
}

$bench->ratio('inserts against COPY', 'insert: pipeline', 'insert: COPY', 1.0);
$bench->ratio('inserts against the direct loop', 'insert: pipeline', 'insert: direct');
$bench->ratio("${_}s against the direct loop", "$_: pipeline", "$_: direct", 0.7) for qw(update delete);
$bench->ratio('60/30/10 against the direct loop', 'mixed: pipeline', 'mixed: direct', 0.7);
$bench->ratio('60/30/10 against a relaxed replica', 'mixed: pipeline', 'mixed: replica, relaxed', 2);
$bench->ratio('60/30/10 against a default replica', 'mixed: pipeline', 'mixed: replica, default', 5);
for my $kind (qw(insert update delete))
{
	$bench->ratio("${kind}s against a $_ replica", "$kind: pipeline", "$kind: replica, $_") for qw(relaxed default);
}
$bench->finish;

sub direct
{
	$session->ask('checkpoint');
	return $session->ask("call benchop.direct_loop('benchop.direct', 'benchop.stage', 10000, 0)");
}

# The file that is read is written anew each time and so is in memory, as the others' input is.
sub copy
{
	my $file = $bench->folder . '/rows';
	my $columns = join(', ', Bench::columns());
	$session->ask("copy (select $columns from benchop.stage) to '$file'");
	$session->ask('checkpoint');
	my $start = time();
	$session->ask("copy benchop.copied from '$file'");
	return time() - $start;
}

# A second server that replicates from where the source began. Whether it writes a binary log of its own is as the servers
# have it by default: MariaDB does not, MySQL does.
sub replica
{
	my ($id, @args) = @_;
	my $replica = CdcBridge::Source->new(args => [ $bench->source_args, "--server-id=$id", ($source->is_mysql ? () : '--skip-log-bin'), @args ]);
	my ($file, $offset) = @{ $bench->{origin} };
	my ($host, $port, $user, $password) = map { $source->$_ } qw(host port user password);
	if ($source->is_mysql)
	{
		$replica->sql("change replication source to source_host = '$host', source_port = $port, source_user = '$user', source_password = '$password', "
			  . "source_log_file = '$file', source_log_pos = $offset, get_source_public_key = 1, source_auto_position = 0", 'start replica');
	}
	else
	{
		$replica->sql("change master to master_host = '$host', master_port = $port, master_user = '$user', master_password = '$password', "
			  . "master_log_file = '$file', master_log_pos = $offset, master_use_gtid = no", 'start slave');
	}
	return $replica;
}

# Poll as often as the pipeline's mirror is polled, then stop.
sub wait_for_replica
{
	my ($replica, $marker) = @_;
	my $dbh = $replica->connect;
	my $deadline = time() + ($ENV{BENCH_TIMEOUT} || 3600);
	until (eval { ($dbh->selectrow_array("select count(*) from bench.marker where n = $marker"))[0] })
	{
		if (time() > $deadline)
		{
			my $status = $dbh->selectrow_hashref($source->is_mysql ? 'show replica status' : 'show slave status');
			die "the replica did not catch up\n" . join('', map { "$_: $status->{$_}\n" } grep { /error/i && $status->{$_} } sort keys %$status);
		}
		select(undef, undef, undef, 0.005);
	}
	my $now = time();
	$dbh->do($source->is_mysql ? 'stop replica' : 'stop slave');
	return $now;
}

sub time_replica
{
	my ($replica, $marker) = @_;
	my $dbh = $replica->connect;
	my $start = time();
	$dbh->do($source->is_mysql ? 'start replica' : 'start slave');
	return wait_for_replica($replica, $marker) - $start;
}
