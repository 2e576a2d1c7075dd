# Rows that three source tables of two pipelines fill in parts, under a copy, a stream, images in part, a filter, new copies and kill -9:
# in the end they are what a full join of the source tables gives.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until random_seed);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $seed = random_seed();
my $source = CdcBridge::Source->new(args => ['--innodb-lock-wait-timeout=2']);
$source->{seed} = $seed;
my $postgres = CdcBridge::Postgres->new;
my $rows = 900;
my @tables = qw(a b c);

$source->sql('create database shop', 'create table shop.a (id int primary key, v varchar(20), n int not null)', 'create table shop.b (id int primary key, w varchar(20) not null, f int not null)', 'create table shop.c (k int primary key, x varchar(20), unique key (x, k))',
	map
	{
		my $table = $_;
		my @ids = grep { rand() < 0.6 } 0 .. $rows - 1;
		"insert into shop.$table values " . join(', ', map { $table eq 'a' ? "($_, 'a$_', 0)" : $table eq 'b' ? "($_, 'b$_', " . $_ % 4 . ')' : "($_, 'c$_')" } @ids);
	} @tables);

# Each writer has keys of its own, some of them hot, in all tables; the first one logs only parts of rows, which a filter does not take.
my $count = 0;
my %is_set;
sub change
{
	my ($dbh, $number) = @_;
	$dbh->do("set session binlog_row_image = '" . ($number == 1 ? 'minimal' : 'full') . "'") if !$is_set{$number}++;
	$dbh->begin_work;
	for (1 .. 1 + int(rand(5)))
	{
		my $table = $tables[ rand($number == 1 ? 2 : 3) ];
		$table = 'c' if $number == 1 && $table eq 'b';
		my ($key, $value, $more) = $table eq 'c' ? ('k', 'x', '') : $table eq 'a' ? ('id', 'v', ', n') : ('id', 'w', ', f');
		my ($id, $to) = map { (rand() < 0.5 ? int(rand(8)) : int(rand($rows / 3))) * 3 + $_ } ($number - 1) x 2;
		my $text = "'" . join('', map { chr(97 + int(rand(26))) } 1 .. 6) . ++$count . "'";
		my $rest = $more eq '' ? '' : ', ' . int(rand(4));
		my $what = int(rand($number == 1 ? 4 : 5));
		if ($what == 0) { $dbh->do("update shop.$table set $value = $text where $key = $id"); }
		elsif ($what == 1) { $dbh->do("delete from shop.$table where $key = $id"); }
		elsif ($what == 2) { $dbh->do("insert ignore into shop.$table ($key, $value$more) values ($id, $text$rest)"); }
		elsif ($what == 3) { $dbh->do("update ignore shop.$table set $key = $to" . ($more eq '' ? '' : "$more = " . int(rand(4))) . " where $key = $id") if $to != $id; }
		else { $dbh->do("replace into shop.$table ($key, $value$more) values ($id, $text$rest)"); }
	}
	rand() < 0.1 ? $dbh->rollback : $dbh->commit;
	return;
}

my @pipelines = map { CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => "in_$_", server => "shop_$_", schema => 'whole', tables => $_ == 1 ? '{shop.a,shop.b}' : '{shop.c}',
	options => sprintf('{"snapshot_chunk_rows": 30, "batch_max_ms": %d, "max_rows_per_second": 1500, "routes": [{"source": "shop.*", "schema": "whole", "table": "t"}],
		"transforms": [{"tables": "shop.b", "filter": "f < 3", "target": "partial"}, {"tables": "shop.c", "projection": "k AS id, x", "target": "partial", "part": "third"}, {"tables": "shop.*", "target": "partial"}]}', int(rand(100)))) } 1 .. 2;

sub is_right
{
	my ($when) = @_;
	$_->wait_for_catchup->wait_for_tables->wait_for_catchup for @pipelines;
	my $there = join("\n", map { join('|', map { $_ // '-' } @$_) } $source->query_rows(q{select ids.id, concat_ws('+', if(a.id is null, null, 'a'), if(b.id is null, null, 'b'), if(c.k is null, null, 'third')), a.v, a.n, b.w, b.f, c.x
		from (select id from shop.a union select id from shop.b where f < 3 union select k from shop.c) ids left join shop.a on a.id = ids.id left join shop.b on b.id = ids.id and b.f < 3 left join shop.c on c.k = ids.id order by ids.id}));
	my $here = $postgres->psql(q{select concat_ws('|', id, array_to_string(cdc_parts, '+'), coalesce(v, '-'), coalesce(n::text, '-'), coalesce(w, '-'), coalesce(f::text, '-'), coalesce(x, '-')) from whole.t order by id});
	ok($here eq $there, "$when: " . (() = $there =~ /$/mg) . ' rows, those of a full join') or do
	{
		my %here = map { ($_ => 1) } split(/\n/, $here);
		my %there = map { ($_ => 1) } split(/\n/, $there);
		diag('only here: ' . join(', ', (grep { !$there{$_} } sort keys %here)[ 0 .. 9 ]), "\nonly there: " . join(', ', (grep { !$here{$_} } sort keys %there)[ 0 .. 9 ]), "\n", map { $_->describe } @pipelines);
	};
	$pipelines[0]{schema} = 'shop';
	$pipelines[0]->is_verified("$when: cdc_verify() says so too", qw(a b));
	return;
}

sub kill_some
{
	for (1 .. 3)
	{
		my ($pid) = split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type like 'cdc_bridge % worker' and backend_type !~ 'maint' order by random() limit 1}));
		$postgres->kill9_process($pid) if $pid;
	}
	return;
}

sub wait_for_writes
{
	my ($file, $offset) = $source->binlog_position;
	poll_until(sub { my ($f, $o) = $source->binlog_position; return $f ne $file || $o > $offset + 60_000; }) or die "nobody writes\n";
	return;
}

$_->setup for @pipelines;
$source->start_writers(3, \&change);
$_->start for @pipelines;
$postgres->poll(q{select count(*) filter (where state = 'done') > 0 from cdc_bridge.snapshot_chunk}, 't', 10);
kill_some();
wait_for_writes();
$source->stop_writers;
is_right('the copy');

$source->start_writers(3, \&change);
wait_for_writes();
kill_some();
$postgres->psql(q{select cdc_resync_table('in_1', 'shop.a'); select cdc_resync_table('in_2', 'shop.c')});
wait_for_writes();
$source->stop_writers;
is_right('the stream, and two new copies');
is($postgres->psql(q{select coalesce(string_agg(source_table || ': ' || conflicts, ', '), '') from pg_stat_cdc_table where conflicts > 0}), '', 'without a conflict');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):|deadlock detected/, 'no assertion failed, no panic, and nobody waited in a circle');
$_->stop for @pipelines;
done_testing();
